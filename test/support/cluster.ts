import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Has an embedded Postgres of this directory begin with a copy of a cluster. */
export async function copyCluster(cluster: string, directory: string): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o711 })
  await promisify(execFile)('cp', ['-a', cluster, join(directory, 'cluster')])
}
