import { endpoint } from '../../../http/endpoint.ts'

export const listBackups = endpoint(
  'GET /_hearth/admin/v1/backups',
  { auth: 'admin' },
  async (_request, { admin, config }) => ({
    backups: await admin.views.operations.backups(),
    every_hours: config.backup.every_hours,
  }),
)
