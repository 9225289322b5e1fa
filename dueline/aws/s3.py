"""Large payloads, as objects in an S3 bucket."""

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from dueline.aws.botocore_errors import is_missing_object, is_refused_object, map_botocore_errors, unless
from dueline.core.ports import Pointer, StoredPayload
from dueline.errors import InvalidJob

_TYPE = "application/json"


class S3Payloads:
    """The payloads in a bucket. `client` returns an S3 client when it is needed: most processes need none."""

    def __init__(self, client: Callable[[], Any], bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def put(self, key: str, text: str) -> Pointer:
        with map_botocore_errors(f"keeping payload {key}"):
            self._client().put_object(Bucket=self._bucket, Key=key, Body=text.encode(), ContentType=_TYPE)
        return self._pointer(key)

    def copy(self, source: Pointer, *, to: str) -> Pointer | None:
        if source.bucket != self._bucket:
            return source
        named = {"Bucket": source.bucket, "Key": source.key}
        with map_botocore_errors(f"copying payload {source.key}"):
            copy = partial(self._client().copy_object, Bucket=self._bucket, Key=to, CopySource=named)
            return None if unless(is_missing_object, copy) is None else self._pointer(to)

    def renew(self, pointer: Pointer) -> None:
        if pointer.bucket != self._bucket:
            return
        place = {"Bucket": pointer.bucket, "Key": pointer.key}
        # S3 copies an object onto itself only with a change: that of its metadata.
        changed: Any = {"MetadataDirective": "REPLACE", "ContentType": _TYPE}
        with map_botocore_errors(f"keeping payload {pointer.key} longer"):
            try:
                self._client().copy_object(**place, CopySource=place, **changed)
            except ClientError as error:
                if is_refused_object(error):
                    raise InvalidJob("its payload in S3 is gone, or may not be copied to be kept longer") from error
                raise

    def read(self, pointer: Pointer) -> str:
        doing = f"reading payload {pointer.key}"
        with map_botocore_errors(doing):
            try:
                body: bytes = self._client().get_object(Bucket=pointer.bucket, Key=pointer.key)["Body"].read()
            except ClientError as error:
                if is_refused_object(error):
                    raise InvalidJob(f"{doing}: {error}") from error
                raise
        return body.decode()

    def find(self, key: str) -> StoredPayload | None:
        with map_botocore_errors(f"looking for payload {key}"):
            look = partial(self._client().head_object, Bucket=self._bucket, Key=key, ChecksumMode="ENABLED")
            head = unless(is_missing_object, look)
        if head is None:
            return None
        checksum = head.get("ChecksumSHA256")
        sha256 = None if checksum is None else base64.b64decode(checksum).hex()
        return StoredPayload(pointer=self._pointer(key), bytes=head["ContentLength"], sha256=sha256)

    def upload_url(self, key: str, *, bytes: int, sha256: str, lasts: timedelta) -> tuple[str, Mapping[str, str]]:
        # Both are among the signed headers: S3 refuses an upload that has another length or checksum.
        checksum = base64.b64encode(binascii.unhexlify(sha256)).decode()
        parameters = {"Bucket": self._bucket, "Key": key, "ContentLength": bytes, "ChecksumSHA256": checksum}
        with map_botocore_errors(f"signing an upload to {key}"):
            url = self._client().generate_presigned_url(
                "put_object", Params=parameters, ExpiresIn=int(lasts.total_seconds())
            )
        return str(url), {"content-length": str(bytes), "x-amz-checksum-sha256": checksum}

    def _pointer(self, key: str) -> Pointer:
        return Pointer(bucket=self._bucket, key=key)
