"""What a package index and an installer are told: links that hold there, and no dependency that needs a pre-release."""

from __future__ import annotations

import io
import json
import re

import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager
from packaging.requirements import Requirement
from readme_renderer import markdown

from speedlint import docs, schemas
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def metadata() -> ProjectMetadata[PluginManager]:
    return ProjectMetadata(str(ROOT), PluginManager())


def test_the_readme_renders_and_its_links_are_absolute(metadata: ProjectMetadata[PluginManager]) -> None:
    warnings = io.StringIO()
    page = markdown.render(metadata.core.readme, stream=warnings)
    assert page
    assert warnings.getvalue() == ""
    assert [link for link in re.findall(r'(?:href|src)="([^"]*)"', page) if not link.startswith(("https://", "#"))] == []


def test_the_readmes_links_lead_to_pages_that_exist() -> None:
    links = re.findall(r"\]\((?!https://|#)([^)#]*)", (ROOT / "README.md").read_text())
    assert links
    assert [link for link in links if not (ROOT / link).is_file()] == []


def test_the_documentation_is_where_the_code_says(metadata: ProjectMetadata[PluginManager]) -> None:
    assert metadata.core.urls["Documentation"] == docs.SITE
    assert f"]({docs.SITE}verify/" in metadata.core.readme
    assert f"site_url: {docs.SITE}\n" in (ROOT / "mkdocs.yml").read_text()
    assert all(json.loads(schemas.text(name))["$id"].startswith(docs.SITE) for name in schemas.NAMES)


def test_no_dependency_asks_for_a_pre_release(metadata: ProjectMetadata[PluginManager]) -> None:
    asked = [Requirement(line) for line in metadata.core.dependencies]
    assert [str(each) for each in asked if each.specifier.prereleases] == []
