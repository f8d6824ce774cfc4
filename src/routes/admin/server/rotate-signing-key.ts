import { endpoint } from '../../../http/endpoint.ts'

export const rotateSigningKey = endpoint(
  'POST /_hearth/admin/v1/signing_key/rotate',
  { auth: 'admin', grave: true },
  async (_request, { ownKeys }) => {
    const { keyId, publicKey, former } = await ownKeys.rotate()
    return { key_id: keyId, public_key: publicKey, former_key_id: former.keyId, expired_ts: former.expiredTs }
  },
)
