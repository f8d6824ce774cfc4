import { Type } from '../../core/shapes.ts'
import { Details, endpoint } from '../../http/endpoint.ts'

const Body = Type.Object({
  auth: Type.Optional(Details),
  new_password: Type.String(),
  logout_devices: Type.Optional(Type.Boolean()),
})

export const changePassword = endpoint(
  'POST C/account/password',
  {
    auth: 'optional',
    suspended: true,
    limited: 'login',
    body: Body,
    uia({ requester, body }, { passwords, passwordChanges }) {
      passwords.checkNew(body.new_password)
      return passwordChanges.flows(requester)
    },
  },
  async ({ requester, body, uia = {} }, { passwordChanges }) => {
    const { new_password: password, logout_devices: logoutDevices = true } = body
    await passwordChanges.change(requester, uia, { password, logoutDevices })
    return {}
  },
)
