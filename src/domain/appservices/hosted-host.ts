import type { Config } from '../../config/schema.ts'
import { ProtocolError } from '../../core/errors.ts'
import { userId } from '../../core/ids.ts'
import type { Profiles } from '../accounts/profiles.ts'
import type { Requester } from '../accounts/requester.ts'
import type { Rooms } from '../rooms/act/rooms.ts'
import type { Appservice } from './appservice.ts'
import type { AppserviceAccounts } from './appservice-accounts.ts'
import type { AppserviceCallers } from './callers.ts'
import type { HostedHost, HostedUser } from './hosted-service.ts'

/** Lets a hosted service act with the same accounts, limits and permissions as with its token over HTTP. */
export function createHostedHost(
  deps: {
    readonly config: Pick<Config, 'server_name'>
    readonly rooms: Rooms
    readonly profiles: Profiles
    readonly accounts: AppserviceAccounts
    readonly callers: AppserviceCallers
  },
  service: Appservice,
): HostedHost {
  const { config, rooms, profiles, accounts, callers } = deps

  async function requesterOf(localpart: string): Promise<Requester> {
    const as = { userId: userId(localpart, config.server_name), deviceId: undefined }
    try {
      return (await callers.find(service.registration.as_token, as))!
    } catch (error) {
      // If two calls make it at once, the second finds the account.
      const device = { deviceId: undefined, displayName: undefined }
      await accounts.register(service, { username: localpart, device, logsIn: false }).catch((reason: unknown) => {
        if (!(reason instanceof ProtocolError && reason.errcode === 'M_USER_IN_USE')) throw error
      })
      return (await callers.find(service.registration.as_token, as))!
    }
  }

  function userOf(by: Requester): HostedUser {
    const sent = (content: Parameters<HostedUser['send']>[2]) => ({ content, offence: undefined })
    return {
      userId: by.userId,
      createRoom: async (request) => (await rooms.create(by, request, undefined)).roomId,
      join: (roomId) => rooms.join(by, roomId, {}),
      leave: (roomId) => rooms.leave(by, roomId, {}),
      invite: (roomId, target) => rooms.invite(by, roomId, target, {}),
      send: (roomId, type, content, txnId) =>
        rooms.send(by, roomId, type, sent(content), { txnId, path: `hosted/${roomId}/${type}/${txnId}` }),
      setState: (roomId, type, stateKey, content) => rooms.setState(by, roomId, type, stateKey, sent(content)),
      setProfile: (field, value) => profiles.change(by, { [field]: value }),
    }
  }

  return {
    as: async (localpart = service.registration.sender_localpart) => userOf(await requesterOf(localpart)),
  }
}
