//! The published form of the snapshot: `docs/schema.json`.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde_json::Value;

use crate::snapshot::Snapshot;

/// JSON Schema (draft 2020-12) of one line of output. Every key is always there, and no other is.
pub fn json_schema() -> Schema {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .with_transform(RecursiveTransform(close))
        .into_generator()
        .into_root_schema_for::<Snapshot>()
}

/// Refuses keys that an object does not name.
fn close(schema: &mut Schema) {
    if schema.get("properties").is_some() {
        schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
}
