-- The device that a user without other devices gets keys through (MSC3814). It is a device like others, which nobody is signed in on.

CREATE TABLE dehydrated_device (
  user_nid bigint PRIMARY KEY,
  device_id text COLLATE "C" NOT NULL,
  -- JSON, encrypted by its user: what a client makes the device of.
  device_data text NOT NULL,
  FOREIGN KEY (user_nid, device_id) REFERENCES device ON DELETE CASCADE
);
