-- The owner's addresses at the moment of a login: whoever logged in may remove them before the owner is told.
ALTER TABLE new_login ADD COLUMN addresses text[];

-- Of another login on a device that its owner was told of before, they are told too.
CREATE INDEX new_login_waiting ON new_login (due_at) WHERE sent_at IS NULL OR logged_in_at > sent_at;
DROP INDEX new_login_due;
