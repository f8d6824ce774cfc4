import { ADMIN } from '../../../admin/office.ts'
import type { Api } from '../../../support/api.ts'
import { waitUntil } from '../../../support/wait.ts'
import type { RemoveRoom } from './actions.ts'

/** Has an administrator remove rooms. */
export function removeRoomAs(api: Api, token: string): RemoveRoom {
  return async (roomId) => {
    const { delete_id: id } = await api.call('DELETE', `${ADMIN}/v2/rooms/${encodeURIComponent(roomId)}`, {
      token,
      body: {},
    })
    await waitUntil('a room to be gone', async () => {
      const { status } = await api.call('GET', `${ADMIN}/v2/rooms/delete_status/${id}`, { token })
      return status === 'complete'
    })
  }
}
