"""Large payloads, as objects in an S3 bucket."""

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from botocore.exceptions import ClientError

from dueline.aws.faults import is_missing_object, is_refused_object, translated
from dueline.errors import InvalidJob
from dueline.model.pointer import Pointer
from dueline.ports import Found

_TYPE = "application/json"


class S3Payloads:
    """The payloads in a bucket. `client` returns an S3 client when it is needed: most processes need none."""

    def __init__(self, client: Callable[[], Any], bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, key: str, text: str) -> Pointer:
        with translated(f"keeping payload {key}"):
            self._client().put_object(Bucket=self._bucket, Key=key, Body=text.encode(), ContentType=_TYPE)
        return self._pointer(key)

    def copy(self, source: Pointer, *, to: str) -> Pointer | None:
        if source.bucket != self._bucket:
            return source
        named = {"Bucket": source.bucket, "Key": source.key}
        with translated(f"copying payload {source.key}"):
            try:
                self._client().copy_object(Bucket=self._bucket, Key=to, CopySource=named)
            except ClientError as error:
                if is_missing_object(error):
                    return None
                raise
        return self._pointer(to)

    def read(self, pointer: Pointer) -> str:
        doing = f"reading payload {pointer.key}"
        with translated(doing):
            try:
                body: bytes = self._client().get_object(Bucket=pointer.bucket, Key=pointer.key)["Body"].read()
            except ClientError as error:
                if is_refused_object(error):
                    raise InvalidJob(f"{doing}: {error}") from error
                raise
        return body.decode()

    def find(self, key: str) -> Found | None:
        with translated(f"looking for payload {key}"):
            try:
                head = self._client().head_object(Bucket=self._bucket, Key=key, ChecksumMode="ENABLED")
            except ClientError as error:
                if is_missing_object(error):
                    return None
                raise
        return Found(pointer=self._pointer(key), bytes=head["ContentLength"], sha256=_hex(head.get("ChecksumSHA256")))

    def upload_url(self, key: str, *, bytes: int, sha256: str, lasts: timedelta) -> tuple[str, Mapping[str, str]]:
        # Both are among the signed headers: S3 refuses an upload that has another length or checksum.
        checksum = base64.b64encode(binascii.unhexlify(sha256)).decode()
        asked = {"Bucket": self._bucket, "Key": key, "ContentLength": bytes, "ChecksumSHA256": checksum}
        with translated(f"signing an upload to {key}"):
            url = self._client().generate_presigned_url(
                "put_object", Params=asked, ExpiresIn=int(lasts.total_seconds())
            )
        return str(url), {"content-length": str(bytes), "x-amz-checksum-sha256": checksum}

    def _pointer(self, key: str) -> Pointer:
        return Pointer(bucket=self._bucket, key=key)


def _hex(checksum: str | None) -> str | None:
    return None if checksum is None else base64.b64decode(checksum).hex()
