-- Backups of room keys have a bound in bytes, too. What was there before, and what the release before puts in, is not counted.
ALTER TABLE key_backup ADD COLUMN bytes bigint NOT NULL DEFAULT 0;
