"""What a process of tests does once, and those who use the code do once, too: a process has one session as a rule."""

from functools import cache

import botocore.session

# A session reads what AWS's services are from files that stay as they are, for a tenth of a second.
botocore.session.create_loader = cache(botocore.session.create_loader)
