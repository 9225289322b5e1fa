"""The role by which GitHub Actions deploys: deploy this once, by hand."""

from aws_cdk import App, Stack
from aws_cdk.aws_iam import OidcProviderNative, PolicyStatement, Role, WebIdentityPrincipal
from constructs import Construct

GITHUB = "token.actions.githubusercontent.com"


class Deployer(Stack):
    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        github = OidcProviderNative(self, "GitHub", url=f"https://{GITHUB}", client_ids=["sts.amazonaws.com"])
        claims = {f"{GITHUB}:aud": "sts.amazonaws.com", f"{GITHUB}:sub": "repo:example/shop:environment:production"}
        trusted = WebIdentityPrincipal(github.oidc_provider_arn, {"StringEquals": claims})
        role = Role(self, "Role", role_name="github-shop", assumed_by=trusted)
        bootstrapped = f"arn:{self.partition}:iam::{self.account}:role/cdk-hnb659fds-*"
        role.add_to_policy(PolicyStatement(actions=["sts:AssumeRole"], resources=[bootstrapped]))


app = App()
Deployer(app, "Deployer")
app.synth()
