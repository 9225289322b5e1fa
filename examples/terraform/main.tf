# What shop.py leaves in cdk.out, uploaded and deployed.

locals {
  bucket = "shop-artifacts"
  queues = toset(["shop-queue-emails"])
  stacks = setunion(["shop-core"], local.queues)
  files  = merge([for stack in local.stacks : jsondecode(file("cdk.out/${stack}.assets.json")).files]...)
}

data "archive_file" "code" {
  for_each    = { for id, file in local.files : id => file.source.path if file.source.packaging == "zip" }
  type        = "zip"
  source_dir  = "cdk.out/${each.value}"
  output_path = "cdk.out/${each.key}.zip"
}

resource "aws_s3_object" "code" {
  for_each = data.archive_file.code
  bucket   = local.bucket
  key      = "${each.key}.zip"
  source   = each.value.output_path
}

resource "aws_s3_object" "template" {
  for_each = local.stacks
  bucket   = local.bucket
  key      = "${each.key}-${filemd5("cdk.out/${each.key}.template.json")}.json"
  source   = "cdk.out/${each.key}.template.json"
}

resource "aws_cloudformation_stack" "core" {
  name         = "shop-core"
  template_url = "https://${local.bucket}.s3.amazonaws.com/${aws_s3_object.template["shop-core"].key}"
  capabilities = ["CAPABILITY_NAMED_IAM"]
  depends_on   = [aws_s3_object.code]
}

resource "aws_cloudformation_stack" "queue" {
  for_each     = local.queues
  name         = each.key
  template_url = "https://${local.bucket}.s3.amazonaws.com/${aws_s3_object.template[each.key].key}"
  capabilities = ["CAPABILITY_NAMED_IAM"]
  depends_on   = [aws_cloudformation_stack.core]
}
