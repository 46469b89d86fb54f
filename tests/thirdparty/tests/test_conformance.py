"""The plugin keeps the rules that every plugin keeps."""

from separata.testing import conformance_tests

test_conformance = conformance_tests("nile")
