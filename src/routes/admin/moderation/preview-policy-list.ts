import { endpoint } from '../../../http/endpoint.ts'

/** What following a list would do. Nothing is done. */
export const previewPolicyList = endpoint(
  'GET /_hearth/admin/v1/policy_lists/{roomId}/preview',
  { auth: 'admin', recorded: true },
  async ({ params }, { admin }) => ({ ...(await admin.listPreview.of(params.roomId)) }),
)
