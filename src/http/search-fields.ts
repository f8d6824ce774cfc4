/** The search fields in a query: its parameters without those that name the caller. */
export function searchFields(uri: string): URLSearchParams {
  const fields = new URLSearchParams(uri.split('?')[1] ?? '')
  for (const ours of ['access_token', 'user_id', 'device_id', 'org.matrix.msc3202.device_id']) fields.delete(ours)
  return fields
}
