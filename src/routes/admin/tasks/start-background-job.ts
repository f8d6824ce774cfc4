import { Type } from '../../../core/shapes.ts'
import { endpoint } from '../../../http/endpoint.ts'

export const startBackgroundJob = endpoint(
  'POST /_synapse/admin/v1/background_updates/start_job',
  { auth: 'admin', body: Type.Object({ job_name: Type.String() }) },
  async ({ body }, { admin }) => {
    await admin.backgroundUpdates.start(body.job_name)
    return {}
  },
)
