import { expect, test } from 'vitest'
import { endpoint } from '../../../src/http/endpoint.ts'
import { LOOKUPS_BEFORE_COMPILING, routeTableOf } from '../../../src/http/paths/route-table.ts'

const OPEN = { auth: 'none' } as const
const rooms = [
  endpoint('GET C/rooms/{roomId}/state', OPEN, () => ({})),
  endpoint('PUT C/rooms/{roomId}/state', { ...OPEN, also: ['CU/state/{roomId}'] }, () => ({})),
]
const newest = [endpoint('GET C/newest', { ...OPEN, often: true }, () => ({}))]

test('servers that serve the same lists share a table, and others have another one', () => {
  const table = routeTableOf([rooms, newest])
  expect(routeTableOf([rooms, newest])).toBe(table)
  expect(routeTableOf([newest, rooms])).not.toBe(table)
  expect(routeTableOf([rooms])).not.toBe(table)
  expect(routeTableOf([rooms]).find('GET', '/_matrix/client/v3/newest')).toBeUndefined()
})

test('an endpoint is found by every path that it has, with the number of its list', () => {
  const table = routeTableOf([rooms, newest])
  const found = (method: string, url: string) => {
    const { place, params } = table.find(method, url) ?? {}
    return place && { endpoint: place.endpoint, list: place.list, dialect: place.dialect, params: { ...params } }
  }
  const [get, put] = rooms
  const params = { root: '_matrix', release: 'r0', roomId: '!a/b' }
  expect(found('GET', '/_matrix/client/r0/rooms/!a%2Fb/state/?x=1')).toEqual({ endpoint: get, list: 0, params })
  expect(found('PUT', '/_proto/client/unstable/state/!a')).toEqual({
    endpoint: put,
    list: 0,
    params: { root: '_proto', roomId: '!a' },
  })
  expect(found('GET', '/_matrix/client/v3/newest')).toEqual({
    endpoint: newest[0],
    list: 1,
    dialect: 'matrix',
    params: {},
  })
  expect(found('GET', '/_proto/client/v3/newest')).toMatchObject({ endpoint: newest[0], params: { root: '_proto' } })
  expect(found('POST', '/_matrix/client/v3/newest')).toBeUndefined()
  expect(found('GET', '/_matrix/client/v4/newest')).toBeUndefined()
})

test('a parameter has no more characters than any identifier can have', () => {
  const table = routeTableOf([rooms])
  const pathOf = (length: number) => `/_matrix/client/v3/rooms/${'x'.repeat(length)}/state`
  expect(table.find('GET', pathOf(2_048))?.params.roomId).toHaveLength(2_048)
  expect(() => table.find('GET', pathOf(2_049))).toThrow('too long')
})

test('finds the same once it is compiled', () => {
  const table = routeTableOf([newest, rooms])
  const find = (url: string) => {
    try {
      return table.find('GET', url)
    } catch (error) {
      return error
    }
  }
  const paths = ['v3/newest', 'v4/newest', 'r0/rooms/!a%2Fb/state/?x=1', '%zz', `v3/rooms/${'x'.repeat(2_049)}/state`]
  const findAll = () => paths.map((path) => find(`/_matrix/client/${path}`))
  const before = findAll()
  expect(before[2]).toMatchObject({ place: { list: 1 }, params: { roomId: '!a/b' } })
  for (let lookup = 0; lookup < LOOKUPS_BEFORE_COMPILING; lookup++) find('/_matrix/client/v3/newest')
  expect(findAll()).toEqual(before)
})

test('a path that is longer than any is not looked up, however long the query may be', () => {
  const table = routeTableOf([rooms])
  expect(table.find('GET', `/${'x/'.repeat(8_191)}x`)).toBeUndefined()
  expect(() => table.find('GET', `/${'x/'.repeat(8_192)}`)).toThrow('The path is too long.')
  expect(() => table.find('GET', `/_matrix/client/v3/rooms/${'%25'.repeat(20_000)}/state?x=1`)).toThrow('too long')
  expect(table.find('GET', `/_matrix/client/v3/rooms/!a/state?${'x'.repeat(60_000)}`)?.params.roomId).toBe('!a')
})
