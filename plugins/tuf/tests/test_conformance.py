"""The plugin keeps what every plugin keeps."""

from separata.testing import conformance_tests

test_conformance = conformance_tests("tuf")
