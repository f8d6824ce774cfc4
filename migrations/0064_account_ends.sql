-- Accounts that are valid for a time, users who may replace their keys without proof, and a log of media that were hidden or shown.
ALTER TABLE account
  -- After this moment the account is locked; NULL: never.
  ADD COLUMN valid_until bigint,
  -- Until this moment its owner replaces cross-signing keys without authentication.
  ADD COLUMN keys_open_until bigint,
  -- What it sends is shown to nobody but itself.
  ADD COLUMN is_shadow_banned boolean NOT NULL DEFAULT false;
CREATE INDEX account_valid_until ON account (valid_until) WHERE valid_until IS NOT NULL;
CREATE INDEX account_shadow_banned ON account (user_nid) WHERE is_shadow_banned;

CREATE TABLE quarantine_change (
  change_nid bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  server_name text COLLATE "C" NOT NULL,
  media_id text COLLATE "C" NOT NULL,
  is_quarantined boolean NOT NULL,
  at bigint NOT NULL
);
