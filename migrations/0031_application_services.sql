-- Accounts that application services made, and messages to devices by users that have none.

-- The id of the application service that made the account; NULL for people.
ALTER TABLE account ADD COLUMN appservice_id text COLLATE "C";

-- A user of an application service sends without a device. Rows go with their device all the same, and with age.
ALTER TABLE to_device_txn DROP CONSTRAINT to_device_txn_user_nid_device_id_fkey;
