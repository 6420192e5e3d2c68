"""An owner's daemon answers what a fit needs, whatever a coordinator says of rights, and for names of jobs alone."""

from types import SimpleNamespace

import pytest

pytest.importorskip("nvflare", reason="federations need NVFlare: pip install 'dsfr[federation]'")

from hypothesis import given
from hypothesis import strategies as st
from nvflare.private.admin_defs import Message
from nvflare.private.defs import RequestHeader, SysCommandTopic, TrainingTopic
from nvflare.private.fed.client.client_req_processors import ClientRequestProcessors

from dsfr.federation.owner_daemon import TOPICS, JobRequest, needed

JOB = "000b87d6-9554-4b85-9d47-baea62358391"


def test_requests_that_read_files_or_end_the_daemon_are_not_there():
    found = {topic for request in needed(ClientRequestProcessors.request_processors) for topic in request.get_topics()}
    assert found == {getattr(TrainingTopic, topic) for topic in TOPICS}
    refused = {SysCommandTopic.SHELL, SysCommandTopic.REPORT_ENV, SysCommandTopic.SYS_INFO}
    refused |= {TrainingTopic.SHUTDOWN, TrainingTopic.RESTART, TrainingTopic.DELETE_RUN}
    assert not found & refused


def asked(job):
    """What a request about a job of this name is answered with."""
    request = Message(topic=TrainingTopic.DEPLOY, body=b"")
    request.set_header(RequestHeader.JOB_ID, job)
    inner = SimpleNamespace(get_topics=lambda: [TrainingTopic.DEPLOY], process=lambda request, context: "deployed")
    return JobRequest(inner).process(request, None)


@given(st.text(min_size=1) | st.sampled_from(["local", "..", f"../{JOB}", f"{JOB}/..", f"{JOB}\n"]))
def test_a_job_is_no_other_folder_of_the_kit(name):
    """NVFlare empties the folder of a job before it writes to it."""
    assert "no name of a job" in str(asked(name).body)


def test_names_that_nvflare_gives_are_answered():
    assert asked(JOB) == asked("") == "deployed"
