"""Notices: when they are written, who has read them, and what channels receive."""

from __future__ import annotations

import json
import threading
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from hmac import digest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from celery import current_app
from django.conf import settings
from django.core import mail
from django.db.models.functions import Now

from service.core.errors import ResourceExhausted, TrimtabError
from service.core.reasons import data_of
from service.notices import channels, delivery, messages, notices, webhook
from service.notices.delivery import MOST_AT_ONCE, MOST_OF_TENANT
from service.notices.models import Channel, Delivery, DeliveryState, Kind, Notice
from service.planning.create import create_study, update_state
from service.platform.addresses import networks
from service.tenancy import access
from service.tenancy.principal import Principal
from service.trials.ask import ask
from service.trials.tell import complete_trial
from service.workers import tasks
from tests.factories.domain import make_principal, make_spec, study_name
from tests.factories.patience import PATIENCE, wait_for

ENDED = [Kind.STUDY_ENDED]


class Receiver:
    """A real HTTP server that keeps the requests, and answers them with `status`."""

    def __init__(self) -> None:
        self.status = 200
        self.received: list[tuple[dict[str, str], bytes]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.received.append(({name.lower(): value for name, value in self.headers.items()}, body))
                receiver.wait()
                self.send_response(receiver.status)
                self.send_header("Location", "/elsewhere")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Keep the output of tests free of requests."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook?a=1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def wait(self) -> None:
        """Wait before the answer."""

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.TRIMTAB_WEBHOOK_NETWORKS = "127.0.0.1"
    made = Receiver()
    yield made
    made.close()


def end_study(principal: Principal) -> str:
    name = create_study(principal, study_name(), make_spec(budget={"max_trials": 1})).name
    (trial,) = ask(principal, name, count=1).trials
    complete_trial(principal, name, trial.number, metrics={"seconds": 1.0})
    return name


def kinds(principal: Principal) -> list[tuple[str, str]]:
    return [(notice.kind, notice.study) for notice in notices.page(principal).page.items]


def only_delivery(principal: Principal) -> Delivery:
    return access.rows(Delivery, principal).get()


def make_due(principal: Principal) -> None:
    access.rows(Delivery, principal).update(due_at=Now())


def test_a_study_that_ends_writes_one_notice(principal: Principal) -> None:
    name = end_study(principal)
    assert kinds(principal) == [("study.ended", name)]
    aborted = create_study(principal, study_name(), make_spec()).name
    update_state(principal, aborted, "PAUSED")
    assert len(kinds(principal)) == 1
    update_state(principal, aborted, "ABORTED", reason="enough")
    assert kinds(principal)[0] == ("study.ended", aborted)
    assert notices.page(principal).page.items[0].reason == "enough"


def test_a_notice_has_the_code_of_its_reason_but_the_words_of_a_person_have_none(principal: Principal) -> None:
    end_study(principal)
    aborted = create_study(principal, study_name(), make_spec()).name
    update_state(principal, aborted, "ABORTED", reason="enough")
    said, done = (data_of(one.reason, one.reason_data) for one in notices.page(principal).page.items)
    assert said is None
    assert done == {"code": "budget_done", "values": {"trials": 1}}


@pytest.mark.parametrize("kind", [*Kind])
def test_each_kind_of_notice_leaves_the_service(principal: Principal, receiver: Receiver, kind: Kind) -> None:
    channel, _ = channels.create(principal, "webhook", receiver.url, ENDED)
    found = notices.send(principal, notices.add(principal, kind, study="nightly"), channel)
    delivery.deliver(principal.tenant_id, found.pk)
    [(_, body)] = receiver.received
    assert json.loads(body)["type"] == kind
    found.refresh_from_db()
    assert found.state == DeliveryState.DELIVERED


def test_notices_and_deliveries_are_filtered_by_conditions(principal: Principal, receiver: Receiver) -> None:
    channel, _ = channels.create(principal, "webhook", receiver.url, ENDED)
    name = end_study(principal)
    notices.add(principal, Kind.RECORD_WITHDRAWN, study=name)
    found = notices.page(principal, where=["kind = STUDY.ended", f"study = {name}"])
    assert ([one.kind for one in found.page.items], found.unread) == (["study.ended"], 2)
    for condition, count in (("state = pending", 1), ("attempts > 0", 0), (f"study = {name}", 1)):
        assert len(channels.deliveries(principal, str(channel.pk), where=[condition]).items) == count
    with pytest.raises(TrimtabError, match="kind, study, reason, time"):
        notices.page(principal, where=["color = red"])


def test_each_person_reads_alone(principal: Principal) -> None:
    other = replace(principal, actor="somebody else")
    end_study(principal)
    end_study(principal)
    newest = notices.page(principal).page.items[0].pk
    assert notices.page(principal).unread == 2
    notices.mark_read(principal, newest)
    # A late request of another window takes nothing back.
    notices.mark_read(principal, newest - 1)
    assert (notices.page(principal).unread, notices.page(other).unread) == (0, 2)
    with pytest.raises(TrimtabError, match="at most"):
        notices.mark_read(principal, newest + 1)


def test_the_oldest_notices_are_removed(principal: Principal, settings: Any) -> None:
    settings.TRIMTAB_NOTICES_PER_TENANT = 3
    for number in range(5):
        notices.add(principal, Kind.STUDY_ENDED, study=f"s{number}")
    assert [study for _, study in kinds(principal)] == ["s4", "s3", "s2"]


def test_a_webhook_gets_a_signed_request(principal: Principal, receiver: Receiver) -> None:
    channel, secret = channels.create(principal, "webhook", receiver.url, ENDED)
    notices.add(principal, Kind.RECORD_WITHDRAWN, study="not-wanted")
    name = end_study(principal)
    sent = only_delivery(principal)
    delivery.deliver(principal.tenant_id, sent.pk)
    # A second message for the same delivery does nothing.
    delivery.deliver(principal.tenant_id, sent.pk)
    ((headers, body),) = receiver.received
    content = json.loads(body)
    assert (content["type"], content["data"]["study"]) == ("study.ended", name)
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = digest(b64decode(secret.removeprefix("whsec_")), signed, sha256)
    assert b64decode(headers["webhook-signature"].removeprefix("v1,")) == expected
    (logged,) = channels.deliveries(principal, str(channel.pk)).items
    assert (logged.state, logged.status, logged.attempts) == (DeliveryState.DELIVERED, 200, 1)


def test_a_delivery_is_tried_again_a_bounded_number_of_times(principal: Principal, receiver: Receiver) -> None:
    receiver.status = 302  # redirects are not followed
    channels.create(principal, "webhook", receiver.url, ENDED)
    end_study(principal)
    sent = only_delivery(principal)
    for attempt in range(1, delivery.MOST_ATTEMPTS + 3):
        make_due(principal)
        delivery.deliver(principal.tenant_id, sent.pk)
        assert len(receiver.received) == min(attempt, delivery.MOST_ATTEMPTS)
    logged = only_delivery(principal)
    assert (logged.state, logged.status) == (DeliveryState.FAILED, 302)
    assert "302" in logged.error


def test_a_delivery_waits_before_it_is_tried_again(principal: Principal, receiver: Receiver) -> None:
    receiver.status = 500
    channels.create(principal, "webhook", receiver.url, ENDED)
    end_study(principal)
    sent = only_delivery(principal)
    delivery.deliver(principal.tenant_id, sent.pk)
    delivery.deliver(principal.tenant_id, sent.pk)
    assert len(receiver.received) == 1
    receiver.status = 204
    make_due(principal)
    delivery.deliver(principal.tenant_id, sent.pk)
    assert only_delivery(principal).state == DeliveryState.DELIVERED


class SlowReceiver(Receiver):
    """A receiver that answers when it is let go."""

    def __init__(self) -> None:
        self.free = threading.Event()
        super().__init__()

    def wait(self) -> None:
        assert self.free.wait(PATIENCE)

    def close(self) -> None:
        self.free.set()
        super().close()


def test_slow_receivers_of_one_tenant_delay_no_delivery_of_another(principal: Principal, receiver: Receiver) -> None:
    slow, other = SlowReceiver(), make_principal()
    try:
        channel, _ = channels.create(principal, "webhook", slow.url, ENDED)
        for _ in range(MOST_AT_ONCE + 2):
            notices.send(principal, notices.add(principal, Kind.TEST), channel)
        for one in access.rows(Delivery, principal):
            # As a message makes `beat` do.
            tasks.deliver_notice(principal.tenant_id, one.pk)
        wait_for(lambda: len(slow.received) == MOST_OF_TENANT)
        channels.create(other, "webhook", receiver.url, ENDED)
        end_study(other)
        tasks.deliver_notice(other.tenant_id, only_delivery(other).pk)
        wait_for(lambda: only_delivery(other).state == DeliveryState.DELIVERED)
        assert len(slow.received) == MOST_OF_TENANT
        slow.free.set()
        wait_for(lambda: not access.rows(Delivery, principal).exclude(state=DeliveryState.DELIVERED).exists())
    finally:
        slow.close()
        # A thread may still use the database of this test.
        wait_for(lambda: not [one for one in threading.enumerate() if one.name == "deliveries"])


def test_deliveries_have_a_queue_that_no_worker_of_suggestions_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(current_app, "send_task", lambda *_, **options: sent.append(options))
    messages.send(1, 1)
    assert sent[0]["queue"] == messages.QUEUE != settings.CELERY_TASK_DEFAULT_QUEUE


def test_test_notices_have_a_rate(principal: Principal, receiver: Receiver) -> None:
    channel, _ = channels.create(principal, "webhook", receiver.url, ENDED)
    for _ in range(channels.TESTS_PER_MINUTE):
        channels.test(principal, str(channel.pk))
    with pytest.raises(ResourceExhausted) as refused:
        channels.test(principal, str(channel.pk))
    assert (refused.value.code, refused.value.retryable, refused.value.data["retry_after_seconds"]) == (
        "rate_limited",
        True,
        60,
    )
    # Other tenants have a rate of their own.
    other = make_principal()
    channel, _ = channels.create(other, "webhook", receiver.url, ENDED)
    channels.test(other, str(channel.pk))
    # A minute later there is room again.
    access.rows(Notice, principal).update(created_at=Now() - timedelta(minutes=1))
    channels.test(principal, str(access.rows(Channel, principal).get().pk))


def test_the_sweep_sends_messages_of_each_tenant_in_turn(
    principal: Principal, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_principal()
    for tenant, count in ((principal, 120), (other, 1)):
        channel, _ = channels.create(tenant, "webhook", receiver.url, ENDED)
        notice = notices.add(tenant, Kind.TEST)
        for _ in range(count):
            notices.send(tenant, notice, channel)
        long_ago = Now() - timedelta(hours=1 if tenant is other else 2)
        access.rows(Delivery, tenant).update(due_at=long_ago, enqueued_at=long_ago)
    sent: list[int] = []
    monkeypatch.setattr(messages, "send", lambda tenant_id, _: sent.append(tenant_id))
    delivery.send_due()
    assert other.tenant_id in sent
    assert 0 < sent.count(principal.tenant_id) < 120


def test_a_private_address_is_refused_for_good(principal: Principal, settings: Any) -> None:
    settings.TRIMTAB_WEBHOOK_NETWORKS = ""
    channels.create(principal, "webhook", "https://localhost/hook", ENDED)
    end_study(principal)
    delivery.deliver(principal.tenant_id, only_delivery(principal).pk)
    logged = only_delivery(principal)
    assert logged.state == DeliveryState.FAILED
    assert "TRIMTAB_WEBHOOK_NETWORKS" in logged.error


def test_public_addresses_need_tls_and_allowed_ones_do_not() -> None:
    allowed = networks("10.0.0.0/8")
    assert webhook.may_reach("8.8.8.8", ())
    assert webhook.may_reach("2606:4700::1111", ())
    assert not webhook.may_reach("8.8.8.8", allowed, secure=False)
    assert webhook.may_reach("10.1.2.3", allowed, secure=False)
    assert not webhook.may_reach("192.168.0.1", allowed)


def test_mail_names_the_study_and_links_to_it(principal: Principal, settings: Any) -> None:
    settings.EMAIL_HOST = "mail.example.org"
    settings.TRIMTAB_CONSOLE_URL = "https://trimtab.example.org/"
    channels.create(principal, "mail", "team@example.org", ENDED)
    name = end_study(principal)
    delivery.deliver(principal.tenant_id, only_delivery(principal).pk)
    (sent,) = mail.outbox
    assert sent.to == ["team@example.org"]
    assert f"https://trimtab.example.org/studies/{name}" in sent.body
    assert name in sent.subject


HOSTILE_REASONS = (
    "a\r\nBcc: victim@example.org\r\n\r\n<html>",
    "Subject: free\nhttps://evil.example/login",
    "\x1b]0;title\x07\x1b[31mred",
    "\u202egnp.exe",
    "\u2028.\n.\nDATA",
    "=?utf-8?q?=0ABcc=3A_a?=",
    "x" * 100_000,
)


@pytest.mark.parametrize("reason", HOSTILE_REASONS)
def test_the_text_of_users_is_quoted_in_mail_and_reaches_no_header(
    principal: Principal, settings: Any, reason: str
) -> None:
    settings.EMAIL_HOST = "mail.example.org"
    settings.TRIMTAB_CONSOLE_URL = "https://trimtab.example.org"
    actor = replace(principal, actor=f"ada\r\nBcc: {reason[:50]}")
    channel, _ = channels.create(actor, "mail", "team@example.org", ENDED)
    notices.add(principal, Kind.STUDY_ENDED, study="s", reason=reason)
    channels.test(actor, str(channel.pk))
    for one in access.rows(Delivery, principal):
        delivery.deliver(principal.tenant_id, one.pk)
    assert len(mail.outbox) == 2
    for sent in mail.outbox:
        message = sent.message()
        assert set(message.keys()) == {
            "Content-Type", "Content-Transfer-Encoding", "MIME-Version", "Subject", "From", "To", "Date", "Message-ID",
            "Auto-Submitted",
        }  # fmt: skip
        assert sent.recipients() == ["team@example.org"]
        assert message.get_content_type() == "text/plain"
        assert len(sent.body) < 10_000
        own = [line for line in sent.body.split("\n") if not line.startswith("> ")]
        assert {line for line in own if line} <= {
            "Study s has ended.", "Test of a channel.", "https://trimtab.example.org/studies/s",
            "https://trimtab.example.org",
        }  # fmt: skip
        assert all(one.isprintable() for line in sent.body.split("\n") for one in line)


@pytest.mark.parametrize(
    "target",
    ["a@b.example\nBcc: c@d.example", '"a\nb"@c.example', "a@b.example, c@d.example", "A <a@b.example>", "a@b"],
)
def test_only_one_mail_address_is_a_target(principal: Principal, settings: Any, target: str) -> None:
    settings.EMAIL_HOST = "mail.example.org"
    with pytest.raises(TrimtabError) as caught:
        channels.create(principal, "mail", target, ENDED)
    assert caught.value.code == "invalid_argument"


@pytest.mark.parametrize(
    ("medium", "target", "wanted", "code"),
    [
        ("pigeon", "https://a.example/", ENDED, "invalid_argument"),
        ("webhook", "ftp://a.example/", ENDED, "invalid_argument"),
        ("webhook", "https://user:word@a.example/", ENDED, "invalid_argument"),
        ("webhook", "https://a.example/\r\nX: 1", ENDED, "invalid_argument"),
        ("webhook", "https://a.example:99999/", ENDED, "invalid_argument"),
        ("webhook", "https://a.example/", [], "invalid_argument"),
        ("webhook", "https://a.example/", ["study.eaten"], "invalid_argument"),
        ("mail", "team@example.org", ENDED, "mail_not_configured"),
    ],
)
def test_wrong_channels_are_refused(
    principal: Principal, medium: str, target: str, wanted: list[str], code: str
) -> None:
    with pytest.raises(TrimtabError) as caught:
        channels.create(principal, medium, target, wanted)
    assert caught.value.code == code
    assert channels.every(principal) == []


def test_the_number_of_channels_is_limited(principal: Principal, settings: Any) -> None:
    settings.TRIMTAB_CHANNELS_PER_TENANT = 1
    channel, _ = channels.create(principal, "webhook", "https://a.example/", ENDED)
    with pytest.raises(TrimtabError) as caught:
        channels.create(principal, "webhook", "https://b.example/", ENDED)
    assert caught.value.code == "quota_exceeded"
    channels.delete(principal, str(channel.pk))
    channels.create(principal, "webhook", "https://a.example/", ENDED)
    with pytest.raises(TrimtabError):
        channels.get(principal, str(channel.pk))


def test_a_lost_message_is_sent_again(principal: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    channels.create(principal, "webhook", "https://a.example/", ENDED)
    end_study(principal)
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(messages, "send", lambda *ids: sent.append(ids))
    delivery.send_due()
    assert (principal.tenant_id, only_delivery(principal).pk) not in sent
    access.rows(Delivery, principal).update(enqueued_at="2020-01-01T00:00:00Z")
    delivery.send_due()
    delivery.send_due()
    assert sent.count((principal.tenant_id, only_delivery(principal).pk)) == 1


def test_notices_belong_to_one_tenant(principal: Principal) -> None:
    end_study(principal)
    assert access.rows(Notice, principal).exists()
    assert notices.page(replace(principal, tenant_id=principal.tenant_id + 10**6)).page.items == []
