# SPDX-License-Identifier: GPL-2.0-only
"""What a build and the package leave on a machine: documents that lead to files which are there, and no trap for make."""
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULE = re.compile(r"^\tinstall -D -m 644 -t debian/weir(/usr/share/doc/weir\S*) (.*)$", re.MULTILINE)


def installed():
    """{path in the package: file here} of the documents and examples."""
    rules = (ROOT / "contrib/debian/rules").read_text()
    found = {f"{folder}/{path.name}": path for folder, patterns in RULE.findall(rules) for pattern in patterns.split()
             for path in ROOT.glob(pattern)}
    return {**found, "/usr/share/doc/weir/examples/ansible.yml": ROOT / "contrib/ansible/weir.yml"}


def test_links_of_documents_lead_to_files_of_the_package():
    files = installed()
    documents = {name: path for name, path in files.items() if path.suffix == ".md" and path.parent.name == "docs"}
    assert {"balancer.md", "countries.md", "kernels.md"} <= {path.name for path in documents.values()}
    for name, path in documents.items():
        for link in re.findall(r"\]\(([^)#]+)[)#]", path.read_text()):
            if "://" in link:
                continue
            assert (path.parent / link).resolve() in files.values(), f"{name} links to {link}"


def test_policies_of_the_package_have_their_lists():
    files = installed()
    policies = [path for path in files.values() if path.suffix == ".weir"]
    lists = [policy.parent / name for policy in policies for name in re.findall(r'\bfile "([^"]+)"', policy.read_text())]
    assert policies and lists
    assert not [path for path in lists if path.resolve() not in files.values()]


def test_pages_name_files_of_the_package():
    """A user of the package is sent to no file of the source tree without the place of the packaged one."""
    files = installed()
    for page in "weir.8.scd", "weir-policy.5.scd":
        text = (ROOT / "docs" / page).read_text()
        text = re.sub(r"In the source\s+tree also [^,]*,", "", text)
        for path in re.findall(r"/usr/share/doc/weir(?:/[\w.-]*[a-z0-9])*", text):
            assert path in files or any(name.startswith(f"{path}/") for name in files), f"{page} names {path}"
        for document in re.findall(r"\bdocs/([\w-]+\.md)", text):
            assert f"/usr/share/doc/weir/{document}" in files, f"{page} names docs/{document}"


def test_a_folder_named_like_a_file_of_make(tmp_path):
    """As contrib/fail2ban's action.d is in an interrupted build of the package."""
    (tmp_path / "deb/source/contrib/action.d").mkdir(parents=True)
    done = subprocess.run(["make", "-s", f"O={tmp_path}", "help"], cwd=ROOT, text=True, capture_output=True, timeout=60,
                          check=False, env={**os.environ, "MAKEFLAGS": ""})
    assert (done.returncode, done.stderr) == (0, "") and "make bench" in done.stdout
