-- A registration may be finished with its session alone, and a finished one sent again gives the same user.
ALTER TABLE uia_session
  -- What the first request wanted, where nobody was logged in: sealed with a key that is made of what only the client holds.
  ADD COLUMN body bytea,
  -- JSON: what a finished session led to. Without it the session goes on.
  ADD COLUMN outcome text;
