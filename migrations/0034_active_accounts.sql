-- Who uses this server: counted for operators.
ALTER TABLE account
  -- When one of its devices was here, within a day; NULL: never since this is noted.
  ADD COLUMN last_active_at bigint;
CREATE INDEX account_active ON account (last_active_at) WHERE last_active_at IS NOT NULL;
