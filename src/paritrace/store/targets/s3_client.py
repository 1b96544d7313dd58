"""Makes the client of the S3 library from the environment; the one place that loads it (extra `s3`)."""

import os
from importlib import import_module
from typing import Any

from paritrace.errors import HostError

CONNECT_SECONDS = 10.0  # a service in reach answers in milliseconds
READ_SECONDS = 60.0  # of silence: a busy service takes seconds to answer a large put
NUM_ATTEMPTS = 4  # of each request, by the library, with growing pauses of some seconds in all


def client_from_environment() -> Any:
    """Return a client with bounded waits; endpoint, region and credentials as the AWS tools find them.

    Raises:
        HostError: Refused: `missing_extra`, or `no_credentials` where a named profile is not there.
    """
    try:
        boto3: Any = import_module("boto3")  # it has no types
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError
    except ImportError as cause:
        raise HostError(
            "S3 targets need boto3, which is not installed", code="missing_extra", fix="pip install 'paritrace[s3]'"
        ) from cause
    settings = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=READ_SECONDS,
        retries={"mode": "standard", "total_max_attempts": NUM_ATTEMPTS},
        s3={"payload_signing_enabled": False},  # the signed checksum covers the bytes: they are read once
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
    )
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or None
    try:
        return boto3.session.Session(region_name=region).client("s3", config=settings)
    except (BotoCoreError, ValueError) as cause:
        raise HostError(
            f"S3 cannot be set up: {' '.join(str(cause).split())[:300]}",
            code="no_credentials",
            fix="set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION, or AWS_PROFILE",
        ) from cause
