import { copyFile, mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { type Api, openApi } from './api.ts'
import { type ChildServer, prepareChildServer } from './child-server.ts'

/** Several processes that run one server. */
export interface Nodes {
  readonly nodes: readonly ChildServer[]
  /** One for each node, which talks to it directly. */
  readonly apis: readonly Api[]
  close(): Promise<void>
}

export interface NodesOptions {
  readonly count: number
  /** The database that a node is told of. */
  readonly url: (n: number) => string
  /** What else a node is told, by environment name. */
  readonly env?: (n: number) => Readonly<Record<string, string>>
}

const KEYS = ['signing.key', 'identity.key']

/** Starts nodes one after another: they have the keys of the first one, and keep files where it does. */
export async function startNodes({ count, url, env = () => ({}) }: NodesOptions): Promise<Nodes> {
  const nodes: ChildServer[] = []
  const apis: Api[] = []
  const close = async () => {
    for (const api of apis) await api.close()
    for (const node of nodes) {
      // Nobody is to take its place.
      await node.kill('SIGKILL')
      await node.dispose()
    }
  }
  try {
    for (let n = 0; n < count; n++) {
      const node = await prepareChildServer({
        env: {
          HEARTH__DATABASE__URL: url(n),
          HEARTH__CLUSTER__SECRET: 'a secret that all nodes of a test have',
          HEARTH__CLUSTER__PORT: '0',
          HEARTH__REGISTRATION__ENABLED: 'true',
          HEARTH__RATE_LIMITS__ENABLED: 'false',
          ...env(n),
        },
      })
      nodes.push(node)
      if (n > 0) await shareFiles(nodes[0]!, node)
      await node.start()
      apis.push(openApi(node.baseUrl))
    }
  } catch (error) {
    await close()
    throw error
  }
  return { nodes, apis, close }
}

async function shareFiles(first: ChildServer, next: ChildServer): Promise<void> {
  const [from, to] = [join(first.dataDir, 'data'), join(next.dataDir, 'data')]
  await mkdir(to, { mode: 0o700 })
  for (const name of KEYS) await copyFile(join(from, name), join(to, name))
  await symlink(join(from, 'media'), join(to, 'media'))
}
