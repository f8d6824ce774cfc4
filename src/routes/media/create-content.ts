import { writeMxc } from '../../core/mxc.ts'
import { endpoint } from '../../http/endpoint.ts'

export const createContent = endpoint(
  'POST media/v1/create',
  { auth: 'user', limited: 'media' },
  async ({ requester }, { media }) => {
    const { mxc, expiresAt } = await media.uploads.reserve(requester)
    return { content_uri: writeMxc(mxc), unused_expires_at: expiresAt }
  },
)
