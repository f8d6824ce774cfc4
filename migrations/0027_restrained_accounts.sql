-- Accounts that are erased, locked or suspended.
ALTER TABLE account
  -- How far the stream of events was when its owner was erased: who was in a room by then goes on reading what was said there.
  ADD COLUMN erased_pos bigint,
  -- Its sessions are refused for as long.
  ADD COLUMN is_locked boolean NOT NULL DEFAULT false,
  -- It reads, and writes to nobody, for as long.
  ADD COLUMN is_suspended boolean NOT NULL DEFAULT false;
CREATE INDEX account_erased ON account (user_nid) WHERE erased_at IS NOT NULL;
