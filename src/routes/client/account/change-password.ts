import { ProtocolError } from '../../../core/errors.ts'
import { type Static, Type } from '../../../core/shapes.ts'
import { CONTACT_STAGES } from '../../../domain/contact/contact-proofs.ts'
import { Details, endpoint } from '../../../http/endpoint.ts'

const Body = Type.Object({
  auth: Type.Optional(Details),
  // Optional here, so that a missing token is reported before a missing password.
  new_password: Type.Optional(Type.String()),
  logout_devices: Type.Optional(Type.Boolean()),
})

const RESET_STAGES: ReadonlySet<unknown> = new Set(Object.values(CONTACT_STAGES))

/** Whether this is a reset of a forgotten password: the caller proves an address of the account, or continues such a session. */
function isReset(auth: Static<typeof Body>['auth']): boolean {
  return RESET_STAGES.has(auth?.type) || (auth?.type === undefined && auth?.session !== undefined)
}

function newPasswordIn({ new_password: password }: Static<typeof Body>): string {
  if (password === undefined) throw new ProtocolError('M_MISSING_PARAM', "Key 'new_password' is missing.")
  return password
}

export const changePassword = endpoint(
  'POST C/account/password',
  {
    auth: 'optional',
    suspended: true,
    limited: 'login',
    body: Body,
    uia({ requester, body, dialect }, { passwords, passwordChanges }) {
      if (requester === undefined && dialect === 'proto' && !isReset(body.auth)) {
        throw new ProtocolError('M_MISSING_TOKEN', 'This needs an access token, or an address that is shown in `auth`.')
      }
      if (requester?.isOauth) throw new ProtocolError('M_FORBIDDEN', 'Change the password on your account page.')
      passwords.checkNew(newPasswordIn(body))
      return passwordChanges.flows(requester)
    },
  },
  async ({ requester, body, uia = {} }, { passwordChanges }) => {
    const { logout_devices: logoutDevices = true } = body
    const password = newPasswordIn(body)
    await passwordChanges.change(requester, uia, { password, logoutDevices })
    return {}
  },
)
