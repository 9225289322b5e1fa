"""The values that everything else speaks of: jobs, messages, instants, queues' settings, rates, and the table's rows.

They are frozen, checked as they are made, and ask nothing of anyone. Imports the standard library and `errors` alone.
"""
