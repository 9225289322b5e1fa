"""What a process of tests does once, and those who use the code do once, too: a process has one session as a rule."""

import inspect
from functools import cache

import botocore.hooks
import botocore.session

# A session reads what AWS's services are from files that stay as they are, for a tenth of a second.
botocore.session.create_loader = cache(botocore.session.create_loader)

# Each session looks at the signatures of 130 handlers, and finds the present names of their events; its clients, too.
_accepts_kwargs = botocore.hooks.accepts_kwargs
_present_name = cache(botocore.hooks.EventAliaser(None)._alias_event_name)


def _accepts_kwargs_by_code(handler):
    code = getattr(handler, "__code__", None)
    return code.co_flags & inspect.CO_VARKEYWORDS if code else _accepts_kwargs(handler)


botocore.hooks.accepts_kwargs = _accepts_kwargs_by_code
botocore.hooks.EventAliaser._alias_event_name = lambda _, event: _present_name(event)
