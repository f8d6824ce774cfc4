import { type StubRoom, VERSION } from './stub-room.ts'
import type { StubHandler, StubServer } from './stub-servers.ts'

/** How a stub answers those who join its room, as a homeserver does that knows of `omit_members`. */
export function residentHandler(room: StubRoom, servers: readonly StubServer[]): StubHandler {
  const names = JSON.stringify(servers.map(({ name }) => name))
  const authChain = [...room.state.slice(0, 3), ...room.members.slice(0, 1), ...room.superseded]
  const whole = pieces(authChain, [...room.state, ...room.members])
  const partial = pieces([room.members[0]!], room.state)
  const chainOfAll = pieces(authChain, [...room.state, ...room.members], 'pdus')
  const ids = JSON.stringify({ pdu_ids: room.ids.state, auth_chain_ids: room.ids.authChain })

  return ({ method, path, query, body }) => {
    const [, , , , operation, , last] = path.split('/').map(decodeURIComponent)
    if (operation === 'make_join') return [JSON.stringify({ room_version: VERSION.id, event: template(last!) })]
    if (operation === 'send_join') {
      const isPartial = query.get('omit_members') === 'true'
      const rest = `,"event":${body},"members_omitted":${isPartial},"servers_in_room":${names}}`
      return [...(isPartial ? partial : whole), rest]
    }
    if (operation === 'state') return [...chainOfAll, '}']
    if (operation === 'state_ids') return [ids]
    if (operation === 'event') {
      const text = room.texts.get(path.split('/').map(decodeURIComponent)[5] as never)
      return text === undefined ? undefined : [`{"pdus":[${text}]}`]
    }
    return method === 'PUT' && operation === 'send' ? ['{"pdus":{}}'] : undefined
  }

  function template(userId: string): object {
    const said = { type: 'm.room.member', sender: userId, state_key: userId, content: { membership: 'join' } }
    return { ...said, ...room.place, room_id: room.roomId, origin_server_ts: Date.now() }
  }
}

/** Events by the thousand, as so many buffers of a megabyte at most. */
function pieces(authChain: readonly string[], state: readonly string[], name = 'state'): Buffer[] {
  const made = [Buffer.from('{"auth_chain":[')]
  const write = (events: readonly string[]) => {
    for (let at = 0; at < events.length; at += 1_000) {
      made.push(Buffer.from(`${at === 0 ? '' : ','}${events.slice(at, at + 1_000).join()}`))
    }
  }
  write(authChain)
  made.push(Buffer.from(`],"${name}":[`))
  write(state)
  made.push(Buffer.from(']'))
  return made
}
