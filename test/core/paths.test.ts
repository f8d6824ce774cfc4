import { expect, test } from 'vitest'
import { expandPath, routesOf } from '../../src/core/paths.ts'

test.each([
  [
    'C/rooms/{roomId}/join',
    [
      '/_matrix/client/v3/rooms/:roomId/join',
      '/_matrix/client/r0/rooms/:roomId/join',
      '/_proto/client/v3/rooms/:roomId/join',
      '/_proto/client/r0/rooms/:roomId/join',
    ],
  ],
  [
    'M/config',
    [
      ...['/_matrix/media/v3/config', '/_matrix/media/r0/config', '/_matrix/media/v1/config'],
      ...['/_proto/media/v3/config', '/_proto/media/r0/config', '/_proto/media/v1/config'],
    ],
  ],
  ['P2', ['/_matrix/identity/v2', '/_proto/identity/v2']],
  ['client/versions', ['/_matrix/client/versions', '/_proto/client/versions']],
  ['/.well-known/{root}/client', ['/.well-known/matrix/client', '/.well-known/proto/client']],
  ['/_synapse/admin/v1/rooms/{roomId}', ['/_synapse/admin/v1/rooms/:roomId']],
])('%s has its paths in both dialects and all releases', (specification, paths) => {
  const expanded = expandPath(specification)
  expect(expanded.map(({ path }) => path)).toEqual(paths)
  expect(expanded.map(({ dialect }) => dialect)).toEqual(paths.map((path) => (/proto/.test(path) ? 'proto' : 'matrix')))
})

test('those that differ in root and release alone are one route', () => {
  expect(routesOf('C/account/whoami')).toEqual([
    { dialect: undefined, path: '/:root(_matrix|_proto)/client/:release(v3|r0)/account/whoami' },
  ])
})
