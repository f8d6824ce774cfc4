import { type Errcode, ProtocolError } from '../../../core/errors.ts'
import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'
import { BindBody } from './bind3pid.ts'

const Body = Type.Object({ three_pid_creds: BindBody })

const NO_PROOF: ReadonlySet<Errcode> = new Set(['M_NO_VALID_SESSION', 'M_SESSION_EXPIRED', 'M_SESSION_NOT_VALIDATED'])

/** The older operation that was replaced by `add` and `bind`. */
export const post3pids = endpoint(
  'POST C/account/3pid',
  { auth: 'user', limited: 'other', body: Body },
  async ({ requester, body }, { contacts }) => {
    const { sid, client_secret: clientSecret, id_server, id_access_token } = body.three_pid_creds
    try {
      await contacts.bind(requester, id_server, id_access_token, { sid, clientSecret })
    } catch (error) {
      if (!(error instanceof ProtocolError && NO_PROOF.has(error.errcode))) throw error
      throw new ProtocolError('M_THREEPID_AUTH_FAILED', error.message)
    }
    return {}
  },
)
