-- Accounts that wait until an operator has let them in. They are locked until then.
ALTER TABLE account ADD COLUMN awaits_approval boolean NOT NULL DEFAULT false;
CREATE INDEX account_awaits_approval ON account (created_at) WHERE awaits_approval;
