import type { Reader, Tx } from '../db/db.ts'

// Table: dehydrated_device

export interface DehydratedDeviceRow {
  readonly device_id: string
  /** JSON */
  readonly device_data: string
}

export async function findDehydratedDevice(reader: Reader, userNid: number): Promise<DehydratedDeviceRow | undefined> {
  const [row] = await reader.query<DehydratedDeviceRow>(
    'SELECT device_id, device_data FROM dehydrated_device WHERE user_nid = $1',
    [userNid],
  )
  return row
}

/** Makes a device of the user the dehydrated one. The one before must be gone. */
export async function storeDehydratedDevice(
  tx: Tx,
  { userNid, deviceId, data }: { readonly userNid: number; readonly deviceId: string; readonly data: string },
): Promise<void> {
  await tx.query(
    `INSERT INTO dehydrated_device (user_nid, device_id, device_data) VALUES ($1, $2, $3)
     ON CONFLICT (user_nid) DO UPDATE SET device_id = EXCLUDED.device_id, device_data = EXCLUDED.device_data`,
    [userNid, deviceId, data],
  )
}
