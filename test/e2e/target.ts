/** The homeserver that the stories run against: one of ours, or the one whose address is in E2E_BASE_URL. */
export async function openTarget(): Promise<{ baseUrl: string; close(): Promise<void> }> {
  const baseUrl = process.env.E2E_BASE_URL
  if (baseUrl !== undefined) return { baseUrl, close: async () => undefined }
  const { startServer } = await import('../support/server.ts')
  return startServer()
}

let count = 0

/** A user name nobody has, also on a server that lives longer than this run. */
export function newName(stem: string): string {
  count += 1
  return `${stem}-${process.pid}-${Date.now().toString(36)}-${count}`
}
