-- A transaction id counts for a device, over all its logins (client-server API, "Transaction identifiers"); in older releases for one
-- login. What was sent carries the number of its login: these are the device's logins, the newest first. The release before knows
-- nothing of them: what is sent after a login by it is not recognised by later ones.
ALTER TABLE device ADD COLUMN sessions bigint[] NOT NULL DEFAULT '{}';
UPDATE device SET sessions = ARRAY[token_nid] FROM access_token
  WHERE access_token.user_nid = device.user_nid AND access_token.device_id = device.device_id;
