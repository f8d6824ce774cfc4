import type { Json } from '../../test/support/api.ts'
import { bothWays, type Row } from './row.ts'
import { expect, until } from './seen.ts'

const enc = encodeURIComponent

/** What needs no room, and so no room version. */
export const queryRows: readonly Row[] = [
  ...bothWays(
    '{guest} looks up a profile of {host}',
    async (host, guest) => {
      const { userId } = host.person
      await host.person.call('PUT', `/profile/${enc(userId)}/displayname`, { displayname: 'At the fire' })
      const profile = await guest.person.call('GET', `/profile/${enc(userId)}`)
      expect('the name is there', profile.displayname === 'At the fire')
      const { displayname } = await guest.person.call('GET', `/profile/${enc(userId)}/displayname`)
      expect('the name alone is there', displayname === 'At the fire')
    },
    'once',
  ),
  ...bothWays(
    '{guest} looks up an alias of {host}',
    async (host, guest) => {
      const room = await host.person.createRoom({ preset: 'public_chat', room_alias_name: 'looked-up' })
      const answer = await guest.person.call('GET', `/directory/room/${enc(`#looked-up:${host.name}`)}`)
      expect('it leads to the room', answer.room_id === room)
      expect('it names the server', answer.servers.includes(host.name))
    },
    'once',
  ),
  ...bothWays(
    '{guest} lists the public rooms of {host}, and searches them',
    async (host, guest) => {
      const body = { preset: 'public_chat', visibility: 'public', name: 'In the open' }
      const room = await host.person.createRoom(body)
      const path = `/publicRooms?server=${enc(host.name)}`
      const isListed = ({ chunk }: Json) => chunk.some((each: Json) => each.room_id === room)
      const search = { filter: { generic_search_term: 'in the open' } }
      await until('the room among what is found', async () => isListed(await guest.person.call('POST', path, search)))
      expect('it is in the whole list', isListed(await guest.person.call('GET', path)))
      const other = await guest.person.call('POST', path, { filter: { generic_search_term: 'elsewhere' } })
      expect('nothing else is found', !isListed(other))
    },
    'once',
  ),
  ...bothWays(
    '{guest} serves the signing keys of {host}, as a notary',
    async (host, guest) => {
      const body = { server_keys: { [host.name]: {} } }
      const { server_keys: answers } = await guest.api.call('POST', '/_matrix/key/v2/query', { body })
      const [answer] = answers
      expect('there is one answer', answers.length === 1 && answer.server_name === host.name)
      const signers = Object.keys(answer.signatures)
      expect(
        'both have signed it',
        [host, guest].every(({ name }) => signers.includes(name)),
      )
    },
    'once',
  ),
]
