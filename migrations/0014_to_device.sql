-- Messages from device to device, which wait until their device has come for them.

CREATE TABLE to_device (
  user_nid bigint NOT NULL,
  device_id text COLLATE "C" NOT NULL,
  -- Position in the ledger: the order in which they are given.
  position bigint NOT NULL,
  -- Sent to all devices of the user at once. One call may hold one such message for a device, and one for it alone.
  is_to_all boolean NOT NULL,
  -- A user id, of this server or another.
  sender text COLLATE "C" NOT NULL,
  type text COLLATE "C" NOT NULL,
  -- JSON
  content text NOT NULL,
  PRIMARY KEY (user_nid, device_id, position, is_to_all),
  FOREIGN KEY (user_nid, device_id) REFERENCES device ON DELETE CASCADE
);

-- One row per call that sent some, for as long as a client may repeat it.
CREATE TABLE to_device_txn (
  user_nid bigint NOT NULL,
  device_id text COLLATE "C" NOT NULL,
  -- Hash of the path with its transaction id.
  txn_hash text COLLATE "C" NOT NULL,
  created_ts bigint NOT NULL,
  PRIMARY KEY (user_nid, device_id, txn_hash),
  FOREIGN KEY (user_nid, device_id) REFERENCES device ON DELETE CASCADE
);
CREATE INDEX to_device_txn_age ON to_device_txn USING brin (created_ts);
