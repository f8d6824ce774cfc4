import { posix } from 'node:path'
import { TEST_SOURCES } from '../support/sources.ts'

/** Files that cannot run where each server is two nodes, and why. */
export const WITHOUT_NODES: Readonly<Record<string, string>> = {
  'test/http/unix-socket.test.ts': 'of two nodes only one listens on the socket',
  ...Object.fromEntries(
    ['federates-again', 'journal'].map((name) => [
      `test/backup/${name}.long.test.ts`,
      'what it restores within seconds still has the lease of the node that it saved, and is started with other keys',
    ]),
  ),
}

const SERVER = 'support/server.ts'
/** Of the files of `npm run test:long`, those that take seconds. */
const TAKES_SECONDS = new RegExp(
  `^(${[
    'accounts/account/fallback-pages',
    'backup/(power-loss|signed)',
    'console/(german|hostile)',
    'contact/(pages|remote-identity-server)',
    'e2e/identity-story',
    'federation/hostile/(calls|invitations)',
    'http/no-oracle',
    'identity/lookup/pepper-rotation',
    'moderation/policy-lists',
    'peers/(history|partial-join|policy-servers)',
    'rooms/malformed/client',
    'sso/(attacks|proof)',
    'sync/sliding/(bad-input|bounds)',
  ].join('|')})\\.long\\.test\\.ts$`,
)

/** Test files that start a server in their own process, by themselves or by what they import. From the root of the project. */
export function filesThatStartServers(): readonly string[] {
  const starting = new Set([SERVER])
  const imports = TEST_SOURCES.map(({ name, code }) => ({
    name,
    targets: [...code.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)].map(([, path]) =>
      posix.join(posix.dirname(name), path!),
    ),
  }))
  for (let before = 0; before < starting.size; ) {
    before = starting.size
    for (const { name, targets } of imports) if (targets.some((target) => starting.has(target))) starting.add(name)
  }
  return [...starting]
    .filter((name) => name.endsWith('.test.ts') && (!name.endsWith('.long.test.ts') || TAKES_SECONDS.test(name)))
    .map((name) => `test/${name}`)
    .sort()
}
