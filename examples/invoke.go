// With github.com/aws/aws-sdk-go-v2/service/lambda; not run by tests.
job := `{"payload": {"to": "ann"}, "delay": 3600, "key": "invoice-42"}`
event, _ := json.Marshal(map[string]any{
	"rawPath": "/queues/emails/jobs", "body": job,
	"requestContext": map[string]any{"http": map[string]any{"method": "POST"}},
})
answer, err := client.Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String("dueline-api:q-emails"), Payload: event})
if err != nil {
	return fmt.Errorf("repeat it: %w", err)
}
if answer.FunctionError != nil {
	return fmt.Errorf("repeat it: %s", *answer.FunctionError)
}
fmt.Println(string(answer.Payload))
