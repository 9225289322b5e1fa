"""The mails of the watch: which were sent is noted in the state table."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from dueline.aws.botocore_errors import map_botocore_errors
from dueline.aws.dynamodb_items import Items, Update
from dueline.core import instant
from dueline.core.rows import WATCH, Row
from dueline.errors import RETRYABLE, DuelineError
from dueline.operations.watch import Condition, Mail, Open, Sighting, after_mail, continued, mails_of

# The row of the mails.
MAILS = (WATCH, "mails")
# Longer than it takes to publish them, and less than until the watch runs again.
_CLAIM = timedelta(seconds=240)
_CLAIM_MAILS = Update(
    expression="SET #owner = :owner, #until = :until",
    condition="(attribute_not_exists(#until) OR #until < :now)"
    " AND (attribute_not_exists(#version) OR #version = :version)",
)
_SAVE_MAILS = Update(
    expression="SET #open = :open, #version = :owner REMOVE #owner, #until",
    condition="#owner = :owner",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Mailer:
    """Publishes the mails of the watch, each once: a claim keeps other runs away meanwhile.

    A run that ends between a publication and its note leaves it to the next to publish again. What could not be
    published is due again in the next run. `sent` are the items of the state table, `client` is boto3's for SNS;
    `topic_of` returns the ARN of a mail's topic, `text_of` its subject and text.
    """

    sent: Items
    client: Any
    topic_of: Callable[[Mail], str]
    text_of: Callable[[Mail], tuple[str, str]]
    new_owner: Callable[[], str]

    def run(self, sighting: Sighting, *, now: datetime) -> list[DuelineError]:
        """Publish what is due, and return what failed of it. Raises Throttled or Unavailable where nothing is known."""
        row = self.sent.read_one(MAILS) or {}
        content: list[Any] = json.loads(str(row.get("open", "[]")))
        before = {Condition(*state): Open(since=since, is_mailed=mailed) for *state, since, mailed in content}
        owner = self.new_owner()
        opened = continued(before, sighting, now=now)
        mails = mails_of(opened, sighting, now=now)
        if opened == before and not mails:
            return []
        if not self._claim(str(row.get("version", "")), owner=owner, now=now):
            return []
        faults = list[DuelineError]()
        for mail in mails:
            try:
                self._publish(mail)
            except RETRYABLE as fault:
                faults.append(fault)
            else:
                opened = after_mail(opened, mail)
        text = json.dumps([[*state, each.since, each.is_mailed] for state, each in opened.items()])
        self.sent.update(MAILS, _SAVE_MAILS, {"open": text, "owner": owner})
        return faults

    def _claim(self, version: str, *, owner: str, now: datetime) -> bool:
        """Claim the mails for one run of the watch, if none has them and they are as they were read."""
        values: Row = {
            "owner": owner,
            "version": version,
            "now": instant.text(now),
            "until": instant.text(now + _CLAIM),
        }
        return self.sent.update(MAILS, _CLAIM_MAILS, values) is not None

    def _publish(self, mail: Mail) -> None:
        topic, (subject, text) = self.topic_of(mail), self.text_of(mail)
        with map_botocore_errors(f"publishing to {topic}"):
            self.client.publish(TopicArn=topic, Subject=subject, Message=text)
