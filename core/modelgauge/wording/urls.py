"""URLs as people may see them."""

from urllib.parse import urlsplit


def without_password(url: str) -> str:
    """A URL without the password that its userinfo or its query holds."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    query = "&".join(field for field in parts.query.split("&") if not field.startswith("password="))
    return parts._replace(netloc=user.partition(":")[0] + at + host, query=query).geturl()
