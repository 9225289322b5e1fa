// With software.amazon.awssdk:lambda; not run by tests.
String job = "{\"payload\": {\"to\": \"ann\"}, \"delay\": 3600, \"key\": \"invoice-42\"}";
ObjectNode event = new ObjectMapper().createObjectNode().put("rawPath", "/queues/emails/jobs").put("body", job);
event.putObject("requestContext").putObject("http").put("method", "POST");
InvokeResponse answer = LambdaClient.create().invoke(request -> request
    .functionName("dueline-api:q-emails")
    .payload(SdkBytes.fromUtf8String(event.toString())));
if (answer.functionError() != null) throw new IllegalStateException(answer.functionError());
System.out.println(answer.payload().asUtf8String());
