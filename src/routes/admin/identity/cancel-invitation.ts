import { endpoint } from '../../../http/endpoint.ts'

export const cancelInvitation = endpoint(
  'DELETE /_hearth/admin/v1/identity/invitations/{invitationId}',
  { auth: 'admin' },
  async ({ params }, { admin }) => {
    await admin.invitations.cancel(/^\d{1,16}$/.test(params.invitationId) ? Number(params.invitationId) : Number.NaN)
    return {}
  },
)
