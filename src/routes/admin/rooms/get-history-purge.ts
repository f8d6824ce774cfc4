import { endpoint } from '../../../http/endpoint.ts'

export const getHistoryPurge = endpoint(
  'GET /_synapse/admin/v1/purge_history_status/{purgeId}',
  { auth: 'admin' },
  ({ params }, { admin }) => admin.historyPurges.status(params.purgeId),
)
