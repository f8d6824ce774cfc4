-- Account data that a client deleted (MSC3391) stays as a row with the content {}, so that the user's other clients hear of it.

ALTER TABLE account_data ADD COLUMN is_deleted boolean NOT NULL DEFAULT false;
