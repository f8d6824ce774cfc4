-- What a transaction held that a service in this process worked through: another one under its id is told apart from a repetition.

-- SHA-256; NULL for those of before.
ALTER TABLE hosted_transaction ADD COLUMN digest bytea;
